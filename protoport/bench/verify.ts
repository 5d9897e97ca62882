import { type CallFigures, maxRoundsDiffer } from "./figures.ts";

/**
 * Compares a run with published figures. Returns a line for each server whose ratio to the floor differs by more than
 * {@link maxRoundsDiffer}. A server that is missing in the run or in the published figures has a line too.
 *
 * A ratio is compared with the nearest bound of a published range. CPU times are not compared, because machines differ.
 */
export function differencesOf(run: CallFigures, published: CallFigures | undefined): string[] {
  if (published === undefined) return ["no figures are published for this scenario"];
  const names = new Set([...run.servers, ...published.servers].map(({ name }) => name));
  return [...names].flatMap((name) => {
    const [measured, expected] = [run, published].map(({ servers }) => servers.find((server) => server.name === name));
    if (measured === undefined) return [`${name}: published, but not measured`];
    if (expected === undefined) return [`${name}: measured, but not published`];
    const [lowest, highest] = expected.timesFloorRange ?? [expected.timesFloor, expected.timesFloor];
    const nearest = Math.min(Math.max(measured.timesFloor, lowest), highest);
    if (Math.abs(measured.timesFloor - nearest) <= nearest * maxRoundsDiffer) return [];
    return [`${name}: ${measured.timesFloor.toFixed(2)} × the floor, published ${expected.timesFloor.toFixed(2)}`];
  });
}
