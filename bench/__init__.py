"""Speed figures, each as a ratio measured side by side in one run."""
