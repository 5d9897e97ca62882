import type { Requirement } from "./requirements.ts";

/** When a suite runs automatically: each `npm test`, each submission (.ci/run), or each night (.ci/nightly). */
export type Occasion = "test" | "run" | "nightly";

interface CommonSuite {
  readonly name: string;
  /** A phrase that names the subject of the suite's tests. */
  readonly about: string;
  readonly occasion: Occasion;
  /** The reason why `npm test` does not run the suite. */
  readonly whySeparate?: string;
  /** Requirements in addition to `npm ci`. Without these requirements, the suite's tests are skipped or fail. */
  readonly needs?: readonly Requirement[];
}

/** Test files in `suites/NAME/`, which vitest runs as a project. The files of `unit` are outside `suites/`. */
export interface FileSuite extends CommonSuite {
  readonly kind: "files";
  /** Test files, or folders ending in a slash, that belong to another suite, and also run with this suite's setting. */
  readonly repeats?: readonly string[];
  /** Whether mutation testing runs the suite, which must need only `npm ci`, and take seconds per file. */
  readonly isForMutants?: boolean;
  /** Maximum number of files that run concurrently. By default, vitest chooses the number. */
  readonly workers?: number;
  /** Whether tests may block their process. In other suites, a blocking test is stopped, and leaks are failures. */
  readonly blocks?: boolean;
  /** Whether each test may take as long as a build (`buildLimitMs`). */
  readonly hasBuildLimit?: boolean;
  /** Environment variables for the suite's tests. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Node flags for the suite's processes. */
  readonly nodeFlags?: readonly string[];
  /** A shell command that must succeed before vitest starts. */
  readonly prepare?: string;
}

/** A test program in `suites/` that writes a report in the vitest format to the file in `TEST_REPORT`. */
interface ProgramSuite extends CommonSuite {
  readonly kind: "program";
  /** The program's path relative to the project folder. A comment at the program's start describes its options. */
  readonly program: string;
}

export type Suite = FileSuite | ProgramSuite;

/** Returns the patterns of a suite's test files, relative to the project folder, and the patterns that they exclude. */
export function filePatternsOf({ name, repeats = [] }: FileSuite): {
  readonly include: string[];
  readonly exclude: string[];
} {
  // Packages that a suite installs contain tests.
  const installed = "**/node_modules/**";
  const repeated = repeats.map((path) => path.replace(/\/$/, "/**/*.test.ts"));
  const tests = "{test,protoport/test,protoport/*/test}";
  return name === "unit"
    ? { include: [`${tests}/**/*.test.ts`], exclude: [installed, `${tests}/suites/**`] }
    : { include: [`${tests}/suites/${name}/**/*.test.ts`, ...repeated], exclude: [installed] };
}

export const isFileSuite = (suite: Suite): suite is FileSuite => suite.kind === "files";
