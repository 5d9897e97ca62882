import { foreignLoadMax, measure, type Measurement, type RoundLength } from "./measure.ts";
import type { Scenario, Subject } from "./scenarios.ts";

/** All rounds of one server under one load. */
export interface Rounds {
  readonly subject: Subject;
  readonly measurements: readonly Measurement[];
}

/** A round that others disturbed is repeated so often; then it counts, and the table shows what disturbed it. */
const attemptsMax = 3;

/**
 * Measures every server of a scenario in each round, in the opposite order from round to round, so that
 * a machine that grows warmer or slower does not favour the first.
 */
export async function runRounds(scenario: Scenario, count: number, length: RoundLength): Promise<readonly Rounds[]> {
  const seen = new Map<Subject, Measurement[]>(scenario.subjects.map((subject) => [subject, []]));
  for (let round = 0; round < count; round += 1) {
    const subjects = round % 2 === 0 ? scenario.subjects : scenario.subjects.toReversed();
    for (const subject of subjects) seen.get(subject)?.push(await quietMeasurement(scenario, subject, length));
  }
  return [...seen].map(([subject, measurements]) => ({ subject, measurements }));
}

async function quietMeasurement(scenario: Scenario, subject: Subject, length: RoundLength): Promise<Measurement> {
  let best = await measure(scenario, subject, length);
  for (let attempt = 1; attempt < attemptsMax && best.foreignLoad > foreignLoadMax; attempt += 1) {
    const again = await measure(scenario, subject, length);
    if (again.foreignLoad < best.foreignLoad) best = again;
  }
  return best;
}
