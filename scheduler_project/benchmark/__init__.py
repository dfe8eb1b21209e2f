"""`manage.py benchmark`: what this scheduler does under load, each figure beside its floor, measured in the same run."""
