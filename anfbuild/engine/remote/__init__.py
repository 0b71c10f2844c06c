"""Remotes: places outside this machine, shared by many, that keep what `engine/store.py` keeps here.

A kind of remote a file (`http`, `objects`, `folder`), all with the few methods of `remote.Remote` and the same names in
them, `ac/<key>` and `cas/<sha256>`: a folder that a web server shows, or a bucket that it is copied to, is the same
remote. Whatever a remote does, a build goes on without it: see `shared`.
"""
