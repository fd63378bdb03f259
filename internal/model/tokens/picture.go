package tokens

// pictures is the number of tokens of a picture with so many pixels under a
// vendor's rule, rather too many than too few. A size of zero stands for one that
// isn't known and is taken as that of a screen, 1920×1080. The rules are those the
// vendors publish:
//
//   - patches32: 1.2 tokens for each square of 32 pixels, as it is (OpenAI, from GPT-5.5)
//   - tiles512: scaled into 2048×2048 and to a short side of 768, then 85 and 170 for each square of 512 (OpenAI, before)
//   - tiles512_mini: the same with 2,833 and 5,667
//   - patches28: one for each square of 28 pixels, at most 1,600 (Anthropic, up to 4.6)
//   - patches28_large: the same with at most 4,784 (Anthropic, from 4.7)
//   - flat1120: 1,120 (Google, from Gemini 3)
//   - tiles768: 258 up to 384×384, else for each square of 768 (Google, Gemini 2)
//
// Any other is 2,500.
func pictures(rule string, width, height int) int {
	if width <= 0 || height <= 0 {
		width, height = 1920, 1080
	}
	width, height = min(width, maxSide), min(height, maxSide)
	switch rule {
	case "patches32":
		return (squares(width, height, 32)*6 + 4) / 5
	case "tiles512":
		return 85 + 170*squares512(width, height)
	case "tiles512_mini":
		return 2833 + 5667*squares512(width, height)
	case "patches28":
		return min(squares(width, height, 28), 1600)
	case "patches28_large":
		return min(squares(width, height, 28), 4784)
	case "flat1120":
		return 1120
	case "tiles768":
		if width <= 384 && height <= 384 {
			return 258
		}
		return 258 * squares(width, height, 768)
	}
	return 2500
}

const maxSide = 100_000 // pixels; keeps the sums small

func squares(width, height, side int) int {
	return ((width + side - 1) / side) * ((height + side - 1) / side)
}

func squares512(width, height int) int {
	if long := max(width, height); long > 2048 {
		width, height = scale(width, 2048, long), scale(height, 2048, long)
	}
	if short := min(width, height); short > 768 {
		width, height = scale(width, 768, short), scale(height, 768, short)
	}
	return squares(width, height, 512)
}

// scale is n·to/from, rounded up.
func scale(n, to, from int) int { return max(1, (n*to+from-1)/from) }
