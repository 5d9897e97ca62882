import { type ChildProcess, fork } from "node:child_process";
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { instrument } from "./blocks.ts";
import { childCoverageFile, coverageFile } from "./coverage-files.ts";
import type { TestRequest, TestResult } from "./test-server.ts";

/** The entered blocks, by test id or test file. */
export type EnteredBlocks = ReadonlyMap<string, ReadonlySet<string>>;

/** A copy of the project in a temporary folder, whose files can be mutated one at a time. */
export class ProjectCopy implements Disposable {
  /**
   * The folder's path is short, because a Unix socket's path has at most 107 bytes, and the folder has PostgreSQL's
   * sockets.
   */
  readonly folder: string = mkdtempSync(join(tmpdir(), "mutants-"));
  readonly #temp: string = join(this.folder, "tmp");
  readonly #running = new Set<ChildProcess>();
  readonly #changed = new Set<string>();
  #testServer: ChildProcess | undefined;

  constructor(project: string) {
    // The folder is readable by all users, because PostgreSQL runs as another user when tests run as root.
    chmodSync(this.folder, 0o755);
    const excluded = new Set(["node_modules", ".git", "dist"]);
    cpSync(project, this.folder, { recursive: true, filter: (name) => !excluded.has(basename(name)) });
    linkPackages(join(project, "node_modules"), join(this.folder, "node_modules"));
  }

  /** Kills the processes that run in the copy, and removes it. */
  [Symbol.dispose](): void {
    this.#running.forEach(killGroup);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Writes a project file. Disposing of the result restores the old text. */
  replace(file: string, text: string): Disposable {
    const path = join(this.folder, file);
    const before = readFileSync(path, "utf8");
    const write = (content: string): void => {
      writeFileSync(path, content);
      this.#changed.add(file);
    };
    write(text);
    return { [Symbol.dispose]: () => write(before) };
  }

  /** Runs test files, repeats failures twice, and returns which source blocks each test enters. */
  async runAllTests(
    files: readonly string[],
    sources: readonly string[],
  ): Promise<TestResult & { entered: EnteredBlocks }> {
    const tools = join(this.folder, "tools/mutants");
    const coverage = join(tools, basename(coverageFile));
    writeFileSync(coverage, "");
    writeFileSync(join(tools, basename(childCoverageFile)), "");
    using instrumented = new DisposableStack();
    for (const file of sources) {
      const source = readFileSync(join(this.folder, file), "utf8");
      instrumented.use(this.replace(file, instrument(source, file, join(tools, "record-child-coverage.ts"))));
    }
    const server = await this.#startTestServer(["--all"]);
    const tests = Object.fromEntries(files.map((file) => [file, []]));
    const timedOut: TestResult = { failure: "the tests timed out after half an hour", files: [] };
    const result = (await this.#request(server, { tests, changed: [] }, 1800)) ?? timedOut;
    this.#kill(server);
    return { ...result, entered: readCoverage(readFileSync(coverage, "utf8")) };
  }

  /** Runs tests until a test fails. A run that takes longer than `seconds` has failed. */
  async runTests(tests: TestRequest["tests"], seconds: number): Promise<TestResult> {
    if (this.#testServer === undefined) {
      // A shorter timeout for each test is enough to detect a test that hangs. While coverage is recorded, workers take
      // longer to start.
      const deadline = "protoport/testing/src/deadline.ts";
      this.replace(deadline, readFileSync(join(this.folder, deadline), "utf8").replace("= 30_000;", "= 6_000;"));
      this.#testServer = await this.#startTestServer([]);
    }
    const result = await this.#request(this.#testServer, { tests, changed: [...this.#changed] }, seconds);
    this.#changed.clear();
    if (result !== undefined) return result;
    this.#kill(this.#testServer);
    this.#testServer = undefined;
    return { failure: `the tests timed out after ${Math.round(seconds)} s`, files: [] };
  }

  async #startTestServer(flags: readonly string[]): Promise<ChildProcess> {
    const server = fork(join(this.folder, "tools/mutants/test-server.ts"), flags, {
      cwd: this.folder,
      // Omits a night's seed, because results must not depend on chance, and more inputs would take longer. Runs all
      // combinations, because a mutant may fail only one of them.
      env: { ...process.env, TMPDIR: this.#temp, TEST_SEED: undefined, TEST_COMBINATIONS: "all" },
      stdio: "ignore",
      // The test server has a separate process group, so that it is killed together with all processes that its tests
      // have started.
      detached: true,
    });
    this.#running.add(server);
    await new Promise((resolve) => server.once("message", resolve));
    return server;
  }

  /** Resolves to the result, or to `undefined` after a timeout or when the server exits. */
  async #request(server: ChildProcess, request: TestRequest, seconds: number): Promise<TestResult | undefined> {
    // Files that a mutant leaves behind must not affect the next mutant.
    rmSync(this.#temp, { recursive: true, force: true, maxRetries: 3 });
    // A process left behind by an earlier mutant may have created the folder again.
    mkdirSync(this.#temp, { mode: 0o755, recursive: true });
    const { promise, resolve } = Promise.withResolvers<TestResult | undefined>();
    const timer = setTimeout(() => resolve(undefined), seconds * 1000);
    const onExit = (): void => resolve(undefined);
    server.once("message", resolve).once("exit", onExit);
    server.send(request);
    const result = await promise;
    clearTimeout(timer);
    server.off("message", resolve).off("exit", onExit);
    return result;
  }

  #kill(child: ChildProcess): void {
    this.#running.delete(child);
    killGroup(child);
  }
}

/** Links each package instead of the folder that contains them, because vitest keeps its caches in that folder. */
function linkPackages(from: string, to: string): void {
  mkdirSync(to);
  for (const name of readdirSync(from).filter((each) => !each.startsWith(".") || each === ".bin")) {
    const [path, link] = [join(from, name), join(to, name)];
    if (name.startsWith("@")) linkPackages(path, link);
    // For a project package, the relative link leads to the package in the copy.
    else if (lstatSync(path).isSymbolicLink()) symlinkSync(readlinkSync(path), link);
    else symlinkSync(path, link);
  }
}

/** Parses lines that have the id of a test or test file, and the blocks that it enters, separated by spaces. */
function readCoverage(lines: string): EnteredBlocks {
  const parts = lines.split("\n").map((line) => line.split(" "));
  return new Map(parts.map(([id = "", ...blocks]) => [id, new Set(blocks)]));
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // The error is ignored, because the process has already exited.
  }
}
