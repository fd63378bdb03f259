package process

// Parent is the variable that tells a program that an agent started it. The runtime's own
// program runs no agents then: limits, money and questions are those of a session, and an
// agent outside of it would have others.
const Parent = "BELAY_PARENT"
