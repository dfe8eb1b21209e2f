// The body of every job: one record at the end of one file, by one write. `adapters/record.py` is the same in Python.
import fs from 'node:fs'

let file

export function record ({ number, due }) {
  file ??= fs.openSync(process.env.PEERS_RECORDS, 'a', 0o600)
  const line = Buffer.allocUnsafe(24)
  line.writeBigInt64LE(BigInt(number), 0)
  line.writeDoubleLE(due, 8)
  line.writeDoubleLE((performance.timeOrigin + performance.now()) / 1000, 16)
  fs.writeSync(file, line)
}
