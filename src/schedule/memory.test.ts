import { scheduleConformance } from "./conformance.ts"
import { MemorySchedule } from "./memory.ts"

scheduleConformance("memory", async () => new MemorySchedule(0))
