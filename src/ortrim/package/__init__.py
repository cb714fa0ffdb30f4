"""What is packaged for every platform: contents, manifest, bill of materials, archives."""
