"""The workload that transcodes media files, with FFmpeg or with oneVPL's tool."""
