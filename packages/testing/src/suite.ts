import type { Requirement } from "./requirements.ts";

/** When a suite runs automatically: in each `npm test`, for each submission (.ci/run), or each night (.ci/nightly). */
export type Occasion = "test" | "run" | "nightly";

interface CommonSuite {
  readonly name: string;
  /** Its tests' subject, as a phrase. */
  readonly about: string;
  readonly occasion: Occasion;
  /** Why `npm test` does not run it. */
  readonly whySeparate?: string;
  /** Requirements in addition to `npm ci`. Without them, its tests are skipped or fail. */
  readonly needs?: readonly Requirement[];
}

/**
 * Test files, which vitest runs as a project with this name. They are in the `suites/NAME/` test folders; those of
 * `unit` are outside `suites/`.
 */
export interface FileSuite extends CommonSuite {
  readonly kind: "files";
  /** Folders whose tests belong to another suite, and run again here with another setting. Each ends in a slash. */
  readonly repeats?: readonly string[];
  /** Whether mutation testing runs it, which requires that it needs only `npm ci` and that a file takes seconds. */
  readonly isForMutants?: boolean;
  /** How many files run concurrently. By default, as chosen by vitest. */
  readonly workers?: number;
  /**
   * Whether its tests block their process while they wait for builds, installations and other programs. In other
   * suites, such a test is stopped, and a file that leaks resources fails (test/support).
   */
  readonly blocks?: boolean;
  /** Whether each test may take as long as a build (`buildLimitMs`). */
  readonly hasBuildLimit?: boolean;
  /** Environment variables for its tests. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Node flags for its processes. */
  readonly nodeFlags?: readonly string[];
  /** A shell command that must succeed before vitest starts. */
  readonly prepare?: string;
}

/** A test program in `suites/` that writes a report in the vitest format to the file in `TEST_REPORT`. */
export interface ProgramSuite extends CommonSuite {
  readonly kind: "program";
  /** Its path relative to the project folder. A comment at its start describes its options. */
  readonly program: string;
}

export type Suite = FileSuite | ProgramSuite;

/** Returns the patterns of a suite's test files, relative to the project folder, and the patterns that they exclude. */
export function filePatternsOf({ name, repeats }: FileSuite): {
  readonly include: string[];
  readonly exclude: string[];
} {
  // Packages that a suite installs contain tests.
  const installed = "**/node_modules/**";
  if (repeats !== undefined) return { include: repeats.map((folder) => `${folder}**/*.test.ts`), exclude: [installed] };
  const tests = "{test,packages/*/test}";
  return name === "unit"
    ? { include: [`${tests}/**/*.test.ts`], exclude: [installed, `${tests}/suites/**`] }
    : { include: [`${tests}/suites/${name}/**/*.test.ts`], exclude: [installed] };
}

/** Returns whether vitest runs a suite. */
export function isFileSuite(suite: Suite): suite is FileSuite {
  return suite.kind === "files";
}
