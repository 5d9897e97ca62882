/** How far an import has come. */
export interface ImportState {
  readonly ids: number;
  readonly bytes: number;
  /** `undefined` when the length of the input is not known, as that of a pipe. */
  readonly bytesTotal: number | undefined;
  readonly elapsedMs: number;
}

/** Returns a line such as "1,200,000 ids, 400,000/s, 60 %, 2 s left"; without a length it ends after the rate. */
export function describeProgress({ ids, bytes, bytesTotal, elapsedMs }: ImportState): string {
  const rate = `${inGroups(ids)} ids, ${inGroups((ids / elapsedMs) * 1_000)}/s`;
  if (bytesTotal === undefined || bytes === 0) return rate;
  // The last line may lack its end, which was counted.
  const share = Math.min(bytes / bytesTotal, 1);
  const leftS = Math.ceil((elapsedMs / share - elapsedMs) / 1_000);
  return `${rate}, ${Math.floor(share * 100)} %, ${inGroups(leftS)} s left`;
}

// A formatter that is kept would be made at the start of every command, and takes as long as half of its modules.
function inGroups(number: number): string {
  return number.toLocaleString("en-US", { maximumFractionDigits: 0 });
}
