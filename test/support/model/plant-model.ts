import { expect } from "vitest";
import type { Call, StoredRecord } from "./store-host.ts";

/** The outcomes that a deletion may have while the database crashes. The second one means that nothing was done. */
const crashOutcomes = ["ERR_OUTCOME_UNKNOWN", "ERR_STORE_UNAVAILABLE"];

/** The content that a store must have according to its responses. */
export class PlantModel {
  readonly plants: Set<number>;
  /** In the order in which plants were deleted. */
  records: StoredRecord[];
  /** The request ids of expired records, which a store may drop at any start. */
  readonly #expired = new Set<string>();

  constructor(plants: Iterable<number> = [], records: Iterable<StoredRecord> = []) {
    this.plants = new Set(plants);
    this.records = [...records];
  }

  clone(): PlantModel {
    return new PlantModel(this.plants, this.records);
  }

  assign({ plants, records }: PlantModel): void {
    this.plants.clear();
    for (const id of plants) this.plants.add(id);
    this.records = [...records];
  }

  expire(): void {
    for (const { requestId } of this.records) this.#expired.add(requestId);
  }

  /** The records that no store may have dropped. */
  get lasting(): readonly StoredRecord[] {
    return this.records.filter(({ requestId }) => !this.#expired.has(requestId));
  }

  /** Removes the expired records that a store has dropped. */
  forget(stored: readonly StoredRecord[]): void {
    const kept = new Set(stored.map(({ requestId }) => requestId));
    this.records = this.records.filter(({ requestId }) => kept.has(requestId) || !this.#expired.has(requestId));
  }

  import(ids: readonly number[], isRestore: boolean): void {
    for (const id of ids) if (isRestore || !this.records.some((record) => record.id === id)) this.plants.add(id);
  }

  recordOf(key: string | undefined): StoredRecord | undefined {
    return key === undefined ? undefined : this.records.find((record) => record.key === key);
  }

  /**
   * Checks the outcomes of concurrent deletions, and applies them.
   * @param outcomes - by request id
   * @param stored - all records, some of which are new: they show which deletions were performed
   * @param crash - what crashed meanwhile; a killed process leaves deletions without an outcome
   */
  delete(
    calls: readonly Call[],
    outcomes: ReadonlyMap<string, string>,
    stored: readonly StoredRecord[],
    crash?: "process" | "database",
  ): void {
    const usedBefore = new Map(calls.map((call) => [call, this.recordOf(call.key)]));
    this.forget(stored);
    for (const record of stored.slice(this.records.length)) {
      // The named plant, once, in its caller's name and with an unused key.
      expect(calls).toContainEqual(record);
      expect(this.plants.delete(record.id), `plant ${record.id} exists`).toBe(true);
      expect(this.recordOf(record.key)).toBeUndefined();
      this.records.push(record);
    }
    for (const call of calls) {
      const outcome = outcomes.get(call.requestId);
      const allowed = this.#allowed(call, usedBefore.get(call));
      if (outcome === undefined) expect(crash, "only a killed process leaves calls without a response").toBe("process");
      else if (crash !== "database" || !crashOutcomes.includes(outcome))
        expect(allowed, JSON.stringify({ call, outcome })).toContain(outcome);
      else if (outcome === "ERR_STORE_UNAVAILABLE") expect(this.#isPerformed(call), JSON.stringify(call)).toBe(false);
    }
  }

  #isPerformed({ requestId }: Call): boolean {
    return this.records.some((record) => record.requestId === requestId);
  }

  #allowed(call: Call, usedBefore: StoredRecord | undefined): readonly string[] {
    if (this.#isPerformed(call)) return ["deleted"];
    // An expired record may have been dropped before or after its key was looked up.
    const isDropped = usedBefore !== undefined && !this.records.includes(usedBefore);
    return isDropped
      ? [...this.#allowedWith(call, usedBefore, true), ...this.#allowedWith(call, this.recordOf(call.key), false)]
      : this.#allowedWith(call, usedBefore ?? this.recordOf(call.key), usedBefore !== undefined);
  }

  /** @param wasUsed - whether the key already had this record before */
  #allowedWith(call: Call, used: StoredRecord | undefined, wasUsed: boolean): readonly string[] {
    if (used?.id === call.id && used.subject === call.subject) return ["deleted"];
    const notFound = this.plants.has(call.id) ? [] : ["not found"];
    if (used === undefined) return notFound;
    // A concurrent deletion with the key may have been performed after this one found no plant.
    return ["ERR_IDEMPOTENCY_KEY_REUSED", ...(wasUsed ? [] : notFound)];
  }
}
