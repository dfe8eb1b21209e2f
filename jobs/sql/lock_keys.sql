-- admit, step 1: who admits entries of a key does so alone. A statement of its own, so that the count in the next one
-- has a snapshot that is younger than the lock. The hashes come in the order of their keys, so two who admit several
-- cannot deadlock; nothing else is locked before, so nobody who waits here holds anything.
SELECT pg_advisory_xact_lock(key.hash) FROM unnest(%(hashes)s::bigint[]) key(hash)
