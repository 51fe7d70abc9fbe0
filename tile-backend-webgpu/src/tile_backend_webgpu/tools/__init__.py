"""Programs of Node.js that look at generated text, and how they are found."""
