// pg-boss. Where the server is comes from libpq's environment variables.
import { createRequire } from 'node:module'
import { when } from './order.mjs'
import { record } from './record.mjs'

const require = createRequire(import.meta.url) // it heeds NODE_PATH
const { PgBoss } = require('pg-boss')

const QUEUE = 'peers'

async function start (isWorker) {
  const boss = new PgBoss({ max: 10, schedule: isWorker, supervise: isWorker })
  boss.on('error', error => console.error(error.message))
  await boss.start()
  return boss
}

export async function prepare () {
  const boss = await start(false)
  await boss.createQueue(QUEUE)
  await boss.stop()
}

export async function schedule (order) {
  const boss = await start(false)
  for (const jobs of order.calls()) {
    if (order.bulk) await boss.insert(QUEUE, jobs.map(job => ({ data: job, startAfter: when(job) })))
    else await boss.send(QUEUE, jobs[0], { startAfter: when(jobs[0]) })
  }
  await boss.stop()
}

// The options are those of its work().
export async function work (options) {
  const boss = await start(true)
  await boss.work(QUEUE, options, async jobs => { for (const job of jobs) record(job.data) })
}
