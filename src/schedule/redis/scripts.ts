/**
 * Scripts that run in Redis. A transport's set has a member "application endpoint" for each of its free lanes, scored by its due time.
 */

/** Lanes considered beyond those asked for, from either end of the set; see `store/postgres/lane-functions.ts`. */
const WIDTH = 100

/**
 * Due lanes, round-robin by application. Their scores are put off by some seconds: if the worker crashes before PostgreSQL has granted
 * them, they are proposed again.
 */
const PROPOSE = `
local now, most, put_off_until = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local rounds, key_of, lanes_of = {}, {}, {}
local function add(key, members)
  for _, member in ipairs(members) do
    if not key_of[member] then
      key_of[member] = key
      local app = string.match(member, '^%S+')
      local round = (lanes_of[app] or 0) + 1
      lanes_of[app] = round
      rounds[round] = rounds[round] or {}
      table.insert(rounds[round], member)
    end
  end
end
for _, key in ipairs(KEYS) do
  add(key, redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, most + ${WIDTH}))
  add(key, redis.call('ZREVRANGEBYSCORE', key, now, '-inf', 'LIMIT', 0, ${WIDTH}))
end
local chosen = {}
for _, round in ipairs(rounds) do
  for _, member in ipairs(round) do
    if #chosen == most then return chosen end
    redis.call('ZADD', key_of[member], put_off_until, member)
    table.insert(chosen, member)
  end
end
return chosen`

/**
 * Due times from PostgreSQL, lane by lane: a time, '' when it is claimed or has nothing to do, or 'ours'. A lane that this worker put off,
 * and that nobody has changed since, takes the new time. For other lanes only an earlier time counts, since the answer may be older than
 * the set; a lane with too early a time is proposed once, refused, and corrected. KEYS: the list of wakes, the sets of the transports
 * that this worker serves, further sets. A lane that has changed its transport is removed from the sets of the others.
 */
const LEARN = `
local now, put_off_until, wakes, served = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local due = 0
for i = 5, #ARGV, 3 do
  local key, member, at = KEYS[tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2]
  local is_put_off = put_off_until and tonumber(redis.call('ZSCORE', key, member) or -1) == put_off_until
  if at == 'ours' or (at == '' and is_put_off) then
    redis.call('ZREM', key, member)
  elseif at ~= '' then
    if is_put_off then redis.call('ZADD', key, at, member) else redis.call('ZADD', key, 'LT', at, member) end
    if tonumber(at) <= now then due = due + 1 end
  end
  for other = 2, served + 1 do
    if KEYS[other] ~= key then redis.call('ZREM', KEYS[other], member) end
  end
end
for _ = redis.call('LLEN', KEYS[1]) + 1, math.min(due, wakes) do redis.call('LPUSH', KEYS[1], '1') end`

export const SCRIPTS = {
  posthornPropose: { lua: PROPOSE },
  posthornLearn: { lua: LEARN },
}

/** The commands that `SCRIPTS` adds to a connection. The first argument says how many keys follow. */
export interface Scripts {
  posthornPropose(...keysAndValues: (string | number)[]): Promise<string[]>
  posthornLearn(...keysAndValues: (string | number)[]): Promise<null>
}
