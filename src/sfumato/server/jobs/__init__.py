"""Work outside the event loop: the writer thread, reading threads, the planner process, retention, estimates."""
