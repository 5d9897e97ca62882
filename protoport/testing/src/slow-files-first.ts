import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Small files that take seconds. */
const slowFile = /\/(?:stores\/contract\/[a-z-]+|engine\/half-close[a-z0-9-]*|readiness-log)\.test\.ts$/;

/**
 * Starts slow files first, because a slow file at the end of a run uses a single core. In a fresh clone, which has no
 * durations of an earlier run, vitest starts with the largest files.
 */
export class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => (slowFile.test(moduleId) ? 0 : 1);
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of the sequencer, not of an array
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
