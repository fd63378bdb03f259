package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// image is an image that was pasted. A message that has its label is sent with it.
type image struct {
	label string // [image 1]
	File
}

// maxImages is how many of the images that were pasted are kept: a message that is taken
// back, or not accepted, has them still.
const maxImages = 16

// addImage puts the label of an image into the composer.
func (c *Chat) addImage(f File) {
	c.pasted++
	name := fmt.Sprintf("image %d", c.pasted)
	label := "[" + name + "]"
	if f.Name != "" {
		name += " (" + f.Name + ")"
	}
	f.Name = name
	c.images = append(c.images, image{label, f})
	c.images = c.images[max(0, len(c.images)-maxImages):]
	c.comp.Chip(label)
}

// imagesIn are the images whose labels a message has.
func (c *Chat) imagesIn(text string) (all []File) {
	for _, i := range c.images {
		if strings.Contains(text, i.label) {
			all = append(all, i.File)
		}
	}
	return all
}

// imageEndings are how names of images end that can be sent along.
var imageEndings = []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}

// pastesImage takes a pasted path of an image, which is what terminals make of a file
// that is dropped on them. false: the text is something else.
func (c typing) pastesImage(text string) bool {
	path := strings.TrimSpace(text)
	bare := strings.ToLower(strings.Trim(path, `'"`))
	if c.entry != nil || strings.Contains(path, "\n") || !slices.ContainsFunc(imageEndings, func(end string) bool { return strings.HasSuffix(bare, end) }) {
		return false
	}
	f, err := c.Desk.Image(path)
	if err != nil {
		c.fail(err)
	}
	if f == nil {
		return false
	}
	c.addImage(*f)
	return true
}

// clipboardImage sends the clipboard's image along with the message.
func (c typing) clipboardImage() {
	c.jobs.start(func(ctx context.Context) func() {
		f, err := c.Desk.ClipboardImage(ctx)
		return func() {
			if c.failed(err); err == nil {
				c.addImage(*f)
			}
		}
	})
}
