// graphile-worker. Where the server is comes from libpq's environment variables.
import { createRequire } from 'node:module'
import { when } from './order.mjs'
import { record } from './record.mjs'

const require = createRequire(import.meta.url) // it heeds NODE_PATH
const { Logger, makeWorkerUtils, run, runMigrations } = require('graphile-worker')

const TASK = 'record'
const logger = new Logger(() => (level, message) => { if (level === 'error') console.error(message) })

export async function prepare () {
  await runMigrations({ logger })
}

export async function schedule (order) {
  const utils = await makeWorkerUtils({ logger })
  for (const jobs of order.calls()) {
    if (order.bulk) await utils.addJobs(jobs.map(job => ({ identifier: TASK, payload: job, runAt: when(job) })))
    else await utils.addJob(TASK, jobs[0], { runAt: when(jobs[0]) })
  }
  await utils.release()
}

// The options are those of its preset.
export async function work (options) {
  const taskList = { [TASK]: async job => record(job) }
  await run({ logger, taskList, preset: { worker: options }, parsedCronItems: [] })
}
