/** Starts both servers, says where they are, and waits to be killed. */
import { PostgresServer } from "./postgres-server.ts"
import { RedisServer } from "./redis-server.ts"

const [postgres, redis] = await Promise.all([PostgresServer.start(), RedisServer.start()])
console.log(JSON.stringify({ postgres: postgres.url, redis: redis.url, folder: postgres.dataDirectory }))
setInterval(() => {}, 1_000_000)
