/** What a caller was told, or can conclude. */
export type Outcome =
  /** 204: this call has deleted the plant. */
  | "deleted"
  /** NOT_FOUND: the plant was not there. */
  | "not found"
  /** UNAVAILABLE with the words that nothing was deleted, or no connection. */
  | "refused"
  /** Any other answer, or none: it may have happened. */
  | "unknown";

/** One call. */
export interface Call {
  /** Its request id, which the record of a deletion keeps. */
  readonly name: string;
  readonly plant: number;
  /** Milliseconds on a clock that all calls share. */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly outcome: Outcome;
}

/** What is in the tables at the end. */
export interface FinalTables {
  readonly plants: ReadonlySet<number>;
  /** The deletion records, each with the request id of its call. */
  readonly records: readonly { readonly plant: number; readonly call: string }[];
}

/** Everything that there is to judge. */
export interface History {
  /** The plants whose import was acknowledged, and before any call asked for them. */
  readonly created: ReadonlySet<number>;
  /** The plants whose import failed in a way that leaves open whether they are there. */
  readonly perhapsCreated: ReadonlySet<number>;
  readonly calls: readonly Call[];
}

/** The promises that were broken, each a sentence. */
export interface Verdict {
  /** Acknowledged, and not durable; or a plant that is gone without a record. */
  readonly lost: readonly string[];
  /** Two callers were told that they deleted a plant, or it has two records, or one that nobody asked for. */
  readonly doubled: readonly string[];
  /** What a caller was told was not so. */
  readonly untrue: readonly string[];
}

/**
 * Judges a history: every call with its start, end and outcome, against the final tables.
 *
 * A record names the call that made it. So "deleted" is true of that call alone; "not found" of a plant that exists is
 * true if another call has made the record and began before this one ended; and "refused" is true of any call but that.
 */
export function checkHistory({ created, perhapsCreated, calls }: History, tables: FinalTables): Verdict {
  const verdict = { lost: [] as string[], doubled: [] as string[], untrue: [] as string[] };
  const callNamed = new Map(calls.map((call) => [call.name, call]));
  const deleterOf = new Map<number, Call | undefined>();
  for (const { plant, call: name } of tables.records) {
    const call = callNamed.get(name);
    if (deleterOf.has(plant)) verdict.doubled.push(`plant ${plant} has two records`);
    if (call?.plant !== plant) verdict.doubled.push(`plant ${plant} has a record of ${name}, which did not ask for it`);
    deleterOf.set(plant, call);
  }
  for (const plant of created) {
    const isRecorded = deleterOf.has(plant);
    if (!isRecorded && !tables.plants.has(plant)) verdict.lost.push(`plant ${plant} is gone without a record`);
    if (isRecorded && tables.plants.has(plant)) verdict.lost.push(`plant ${plant} is there beside its record`);
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
  { lost, untrue }: { readonly lost: string[]; readonly untrue: string[] },
): void {
  const said = `${call.name} was told "${call.outcome}" of plant ${call.plant}`;
  const isDeleter = deleter === call;
  if (call.outcome === "deleted" && deleter === undefined) lost.push(`${said}, which has no record`);
  if (call.outcome === "deleted" && deleter !== undefined && !isDeleter)
    untrue.push(`${said}, which ${deleter.name} has deleted`);
  if (call.outcome === "refused" && isDeleter) untrue.push(`${said}, and has deleted it`);
  if (call.outcome !== "not found" || !wasCreated) return;
  if (isDeleter) untrue.push(`${said}, and has deleted it`);
  else if (deleter === undefined) untrue.push(`${said}, which nobody has deleted`);
  else if (deleter.startedMs > call.endedMs) untrue.push(`${said}, before anybody began to delete it`);
}
