import type { Requirement } from "./requirements.ts";

/** Where a suite runs by itself: in each `npm test`, for each submission (.ci/run), or each night (.ci/nightly). */
export type Occasion = "test" | "run" | "nightly";

interface CommonSuite {
  readonly name: string;
  /** What it tests, as a phrase. */
  readonly about: string;
  readonly occasion: Occasion;
  /** Why `npm test` does not run it. */
  readonly whySeparate?: string;
  /** What it needs in addition to `npm ci`; without that, its tests are skipped or fail. */
  readonly needs?: readonly Requirement[];
}

/** Test files, which vitest runs as a project of this name. */
export interface FileSuite extends CommonSuite {
  readonly kind: "files";
  /** Patterns of its files, as paths from the project's folder. `unit` leaves out those of other suites. */
  readonly files: readonly string[];
  /** Whether mutation testing runs it, because it needs nothing but `npm ci` and a file takes seconds. */
  readonly isForMutants?: boolean;
  /** Whether its files belong to another suite, too, and run here in another way. */
  readonly isRepeated?: boolean;
  /** How many files run at the same time. Default: as many as vitest chooses for the machine. */
  readonly workers?: number;
  /**
   * Whether its tests wait for builds, installations and other programs by calls that block their process. In the other
   * suites such a test is stopped, and a file that leaves something behind fails (test/support).
   */
  readonly blocks?: boolean;
  /** Whether each test may take as long as a build (`buildLimitMs`). */
  readonly hasBuildLimit?: boolean;
  /** Added to the environment of its tests. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Flags of node for its processes. */
  readonly nodeFlags?: readonly string[];
  /** A command of the shell that must succeed before vitest starts. */
  readonly prepare?: string;
}

/** A program that tests, counts, and writes its report to the file in `TEST_REPORT`, in the form of vitest's. */
export interface ProgramSuite extends CommonSuite {
  readonly kind: "program";
  /** Its path from the project's folder; a comment at its start describes its options. */
  readonly program: string;
}

export type Suite = FileSuite | ProgramSuite;

/** Whether vitest runs it. */
export function isFileSuite(suite: Suite): suite is FileSuite {
  return suite.kind === "files";
}
