module recountagents

go 1.24
