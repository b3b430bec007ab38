/** Scripts that run in Redis. The set has a member "application endpoint" for each free lane, scored by its due time. */

/** Lanes considered beyond those asked for, from either end of the set; see `store/postgres/lane-functions.ts`. */
const WIDTH = 100

/**
 * Due lanes, round-robin by application. Their scores are put off by some seconds: if the worker crashes before PostgreSQL has granted
 * them, they are proposed again.
 */
const PROPOSE = `
local now, most, put_off_until = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local rounds, seen, lanes_of = {}, {}, {}
local function add(members)
  for _, member in ipairs(members) do
    if not seen[member] then
      seen[member] = true
      local app = string.match(member, '^%S+')
      local round = (lanes_of[app] or 0) + 1
      lanes_of[app] = round
      rounds[round] = rounds[round] or {}
      table.insert(rounds[round], member)
    end
  end
end
add(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, most + ${WIDTH}))
add(redis.call('ZREVRANGEBYSCORE', KEYS[1], now, '-inf', 'LIMIT', 0, ${WIDTH}))
local chosen = {}
for _, round in ipairs(rounds) do
  for _, member in ipairs(round) do
    if #chosen == most then return chosen end
    redis.call('ZADD', KEYS[1], put_off_until, member)
    table.insert(chosen, member)
  end
end
return chosen`

/**
 * Due times from PostgreSQL, lane by lane: a time, '' when it is claimed or has nothing to do, or 'ours'. A lane that this worker put off,
 * and that nobody has changed since, takes the new time. For other lanes only an earlier time counts, since the answer may be older than
 * the set; a lane with too early a time is proposed once, refused, and corrected.
 */
const LEARN = `
local now, put_off_until, wakes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local due = 0
for i = 4, #ARGV, 2 do
  local member, at = ARGV[i], ARGV[i + 1]
  local is_put_off = put_off_until and tonumber(redis.call('ZSCORE', KEYS[1], member) or -1) == put_off_until
  if at == 'ours' or (at == '' and is_put_off) then
    redis.call('ZREM', KEYS[1], member)
  elseif at ~= '' then
    if is_put_off then redis.call('ZADD', KEYS[1], at, member) else redis.call('ZADD', KEYS[1], 'LT', at, member) end
    if tonumber(at) <= now then due = due + 1 end
  end
end
for _ = redis.call('LLEN', KEYS[2]) + 1, math.min(due, wakes) do redis.call('LPUSH', KEYS[2], '1') end`

export const SCRIPTS = {
  posthornPropose: { lua: PROPOSE, numberOfKeys: 1 },
  posthornLearn: { lua: LEARN, numberOfKeys: 2 },
}

/** The commands that `SCRIPTS` adds to a connection. */
export interface Scripts {
  posthornPropose(lanes: string, now: number, most: number, putOffUntil: number): Promise<string[]>
  posthornLearn(
    lanes: string,
    wake: string,
    now: number,
    putOffUntil: number | "",
    wakes: number,
    ...news: (string | number)[]
  ): Promise<null>
}
