"""The file formats and names of predecessors, one file a tool. Plain values go in and come out."""
