/**
 * What is done inside Redis, in one step each. The set has a member for each free lane, "application endpoint", scored by when it is
 * due; which application a lane belongs to is thus known without asking.
 */

/** Beside those asked for, so many are looked at from either end of the line; see `store/postgres/lane-functions.ts`. */
const WIDTH = 100

/**
 * Lanes that are due, applications in turn. They stay in the set, put off for some seconds: should we crash before PostgreSQL has
 * granted them, they come up again.
 */
const PROPOSE = `
local now, most, put_off_until = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local rounds, seen, lanes_of = {}, {}, {}
local function line_up(members)
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
line_up(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, most + ${WIDTH}))
line_up(redis.call('ZREVRANGEBYSCORE', KEYS[1], now, '-inf', 'LIMIT', 0, ${WIDTH}))
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
 * How things stand in PostgreSQL, lane by lane: its time, nothing when it is claimed or has nothing to do, or that it is ours. For a
 * lane that we had put off that is the truth, unless somebody has said something about it since. For the others only an earlier time
 * is news: what is in the set wrongly is proposed once, refused, and corrected.
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

/** What `SCRIPTS` makes of a connection. */
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
