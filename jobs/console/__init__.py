"""The operators' pages in Django's admin. No page counts jobs, and every look at them has a window of due times."""
