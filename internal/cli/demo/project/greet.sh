#!/bin/sh
# Says hello to the name it is given, or to the world.
name=${1:-word}
echo "Hello, $name!"
