// `node main.mjs PEER prepare|schedule|work OPTIONS`: one verb of one peer, as adapters/__main__.py has them.
import { Order } from './order.mjs'

const [peer, verb, options] = process.argv.slice(2)
const adapter = await import(`./${peer}.mjs`)
if (verb === 'schedule') {
  const order = new Order()
  await adapter.schedule(order)
  console.log(JSON.stringify(order.result()))
} else {
  await adapter[verb](JSON.parse(options))
}
