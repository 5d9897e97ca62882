/** A call's outcome, from the caller's view. */
export type Outcome =
  /** 204, because this call has deleted the plant. */
  | "deleted"
  /** NOT_FOUND, because the plant did not exist. */
  | "not found"
  /** UNAVAILABLE with the message that nothing was deleted, or no connection. */
  | "refused"
  /** Another response, or none. The plant may have been deleted. */
  | "unknown";

export interface Call {
  /** The call's request id, which the deletion record contains. */
  readonly name: string;
  readonly plant: number;
  /** The time in ms, on a clock that all calls share. */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly outcome: Outcome;
}

export interface FinalTables {
  readonly plants: ReadonlySet<number>;
  /** The deletion records, each with its call's request id. */
  readonly records: readonly { readonly plant: number; readonly call: string }[];
}

/** Reads the final tables. @param query - runs a statement, and returns its rows */
export async function readTables(
  query: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>,
): Promise<FinalTables> {
  const plants = await query("SELECT id FROM plants");
  const records = await query("SELECT plant_id, request_id FROM deletions");
  return {
    plants: new Set(plants.map(({ id }) => Number(id))),
    records: records.map((row) => ({ plant: Number(row["plant_id"]), call: String(row["request_id"]) })),
  };
}

export interface History {
  /** The plants whose import was acknowledged, which happened before any call for them. */
  readonly created: ReadonlySet<number>;
  /** The plants whose import failed without a known outcome. */
  readonly perhapsCreated: ReadonlySet<number>;
  readonly calls: readonly Call[];
}

/** A sentence for each broken guarantee. */
export interface Verdict {
  /** Acknowledged deletions that were not durable, and missing plants without a record. */
  readonly lost: readonly string[];
  /** Plants with two records, or with an unknown call's record. */
  readonly doubled: readonly string[];
  readonly wrong: readonly string[];
}

/**
 * Checks a history, which has all calls with start, end and outcome, against the final tables.
 *
 * A record names the call that wrote it. So "deleted" is right only for that call. "not found" is right if another call
 * has written the record and started before this one ended. "refused" is right for any call but the one in the record.
 */
export function checkHistory({ created, perhapsCreated, calls }: History, tables: FinalTables): Verdict {
  const verdict = { lost: [] as string[], doubled: [] as string[], wrong: [] as string[] };
  const callNamed = new Map(calls.map((call) => [call.name, call]));
  const deleterOf = new Map<number, Call | undefined>();
  for (const { plant, call: name } of tables.records) {
    const call = callNamed.get(name);
    if (deleterOf.has(plant)) verdict.doubled.push(`plant ${plant} has two records`);
    if (call?.plant !== plant)
      verdict.doubled.push(`plant ${plant} has a record of ${name}, which was not a call for it`);
    deleterOf.set(plant, call);
  }
  for (const plant of created) {
    const isRecorded = deleterOf.has(plant);
    if (!isRecorded && !tables.plants.has(plant)) verdict.lost.push(`plant ${plant} is missing without a record`);
    if (isRecorded && tables.plants.has(plant)) verdict.lost.push(`plant ${plant} exists in spite of its record`);
  }
  for (const plant of [...tables.plants, ...deleterOf.keys()]) {
    if (!created.has(plant) && !perhapsCreated.has(plant)) verdict.doubled.push(`plant ${plant} was never created`);
  }
  for (const call of calls) judge(call, deleterOf.get(call.plant), created.has(call.plant), verdict);
  return verdict;
}

function judge(
  call: Call,
  deleter: Call | undefined,
  wasCreated: boolean,
  { lost, wrong }: { readonly lost: string[]; readonly wrong: string[] },
): void {
  const result = `${call.name} got "${call.outcome}" for plant ${call.plant}`;
  const isDeleter = deleter === call;
  if (call.outcome === "deleted" && deleter === undefined) lost.push(`${result}, which has no record`);
  if (call.outcome === "deleted" && deleter !== undefined && !isDeleter)
    wrong.push(`${result}, which ${deleter.name} has deleted`);
  if (call.outcome === "refused" && isDeleter) wrong.push(`${result}, and has deleted it`);
  if (call.outcome !== "not found" || !wasCreated) return;
  if (isDeleter) wrong.push(`${result}, and has deleted it`);
  else if (deleter === undefined) wrong.push(`${result}, which was not deleted`);
  else if (deleter.startedMs > call.endedMs) wrong.push(`${result}, before its deletion started`);
}
