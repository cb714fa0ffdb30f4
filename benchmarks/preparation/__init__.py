"""What the steps of a buildspec's models bring: size, memory and speed before and after, with real models."""
