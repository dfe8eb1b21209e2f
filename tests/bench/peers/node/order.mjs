// What an adapter is asked to schedule, and how long its calls took. `adapters/order.py` is the same in Python.
import fs from 'node:fs'

const CALL = 1000 // jobs that a call of a bulk API is given
const TEXT = 'y'.repeat(47) // makes a payload about 100 bytes of JSON

export class Order {
  times = []

  constructor () {
    Object.assign(this, JSON.parse(fs.readFileSync(0)))
  }

  // The jobs of one call after another; the time until the next is asked for counts as the call's.
  * calls () {
    const size = this.bulk ? CALL : 1
    for (let start = 0; start < this.dues.length; start += size) {
      const dues = this.dues.slice(start, start + size)
      const jobs = dues.map((due, n) => ({ number: this.first + start + n, due, text: TEXT }))
      const begun = performance.now()
      yield jobs
      this.times.push(performance.now() - begun)
    }
  }

  result () {
    const sum = this.times.reduce((one, other) => one + other, 0)
    return { seconds: sum / 1000, p50_ms: median(this.times), ended: Date.now() / 1000 }
  }
}

export const when = job => new Date(job.due * 1000)

function median (times) {
  const ordered = times.toSorted((one, other) => one - other)
  const middle = ordered.length >> 1
  return ordered.length % 2 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2
}
