package gym

var (
	Operator  = operator
	Dangerous = dangerous
)
