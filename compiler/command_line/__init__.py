"""What commands share: how they take a program, print answers, and report errors."""
