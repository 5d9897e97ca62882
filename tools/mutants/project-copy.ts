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
import { withCounts } from "./blocks-of.ts";
import { enteredBlocks, enteredByChildren } from "./entered-blocks.ts";
import type { TestAnswer, TestQuestion } from "./test-server.ts";

/** The blocks that are entered, by the id of the test, or of the test file. */
export type Entered = ReadonlyMap<string, ReadonlySet<string>>;

/** A copy of the project in a folder of its own, in which faults are planted one at a time. */
export class ProjectCopy implements Disposable {
  /** Short, for the sockets of PostgreSQL in it: the path of a Unix socket has at most 107 bytes. */
  readonly folder: string = mkdtempSync(join(tmpdir(), "faults-"));
  readonly #temp: string = join(this.folder, "tmp");
  readonly #running = new Set<ChildProcess>();
  readonly #changed = new Set<string>();
  #testServer: ChildProcess | undefined;

  constructor(project: string) {
    // PostgreSQL runs as another user when these tests run as root.
    chmodSync(this.folder, 0o755);
    const left = new Set(["node_modules", ".git", "dist"]);
    cpSync(project, this.folder, { recursive: true, filter: (name) => !left.has(basename(name)) });
    linkPackages(join(project, "node_modules"), join(this.folder, "node_modules"));
  }

  /** Ends the processes that run in the copy, and removes it. */
  [Symbol.dispose](): void {
    this.#running.forEach(endGroup);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Writes a file of the project; disposing of the result restores the old text. */
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

  /** Runs all of these test files, repeats failures twice, and tells which blocks of these sources each test enters. */
  async runAllTests(files: readonly string[], sources: readonly string[]): Promise<TestAnswer & { entered: Entered }> {
    const tools = join(this.folder, "tools/mutants");
    const entered = join(tools, basename(enteredBlocks));
    writeFileSync(entered, "");
    writeFileSync(join(tools, basename(enteredByChildren)), "");
    using counted = new DisposableStack();
    for (const file of sources) {
      const source = readFileSync(join(this.folder, file), "utf8");
      counted.use(this.replace(file, withCounts(source, file, join(tools, "record-child.ts"))));
    }
    const server = await this.#startTestServer(["--all"]);
    const tests = Object.fromEntries(files.map((file) => [file, []]));
    const late: TestAnswer = { failure: "not done after half an hour", files: [] };
    const answer = (await this.#ask(server, { tests, changed: [] }, 1800)) ?? late;
    this.#end(server);
    return { ...answer, entered: readEntered(readFileSync(entered, "utf8")) };
  }

  /** Runs tests until one fails. A run longer than `seconds` has failed. */
  async runTests(tests: TestQuestion["tests"], seconds: number): Promise<TestAnswer> {
    if (this.#testServer === undefined) {
      // A shorter deadline of each test is enough to see that one hangs, but not while blocks are counted: workers take
      // longer to start then.
      const deadline = "packages/testing/src/deadline.ts";
      this.replace(deadline, readFileSync(join(this.folder, deadline), "utf8").replace("= 30_000;", "= 6_000;"));
      this.#testServer = await this.#startTestServer([]);
    }
    const answer = await this.#ask(this.#testServer, { tests, changed: [...this.#changed] }, seconds);
    this.#changed.clear();
    if (answer !== undefined) return answer;
    this.#end(this.#testServer);
    this.#testServer = undefined;
    return { failure: `no answer after ${Math.round(seconds)} s`, files: [] };
  }

  async #startTestServer(flags: readonly string[]): Promise<ChildProcess> {
    const server = fork(join(this.folder, "tools/mutants/test-server.ts"), flags, {
      cwd: this.folder,
      // Without the seed of a night: the verdict on a fault must not depend on luck, and more inputs would take longer.
      env: { ...process.env, TMPDIR: this.#temp, TEST_SEED: undefined },
      stdio: "ignore",
      // A process group of its own, so that it is ended with everything that its tests have started.
      detached: true,
    });
    this.#running.add(server);
    await new Promise((resolve) => server.once("message", resolve));
    return server;
  }

  /** Resolves to the answer, or to `undefined` when none comes in time. */
  async #ask(server: ChildProcess, question: TestQuestion, seconds: number): Promise<TestAnswer | undefined> {
    // Files that one fault leaves behind must not disturb the next.
    rmSync(this.#temp, { recursive: true, force: true, maxRetries: 3 });
    // A process that a former one has left may have made it again.
    mkdirSync(this.#temp, { mode: 0o755, recursive: true });
    const { promise, resolve } = Promise.withResolvers<TestAnswer | undefined>();
    const timer = setTimeout(() => resolve(undefined), seconds * 1000);
    const hasEnded = (): void => resolve(undefined);
    server.once("message", resolve).once("exit", hasEnded);
    server.send(question);
    const answer = await promise;
    clearTimeout(timer);
    server.off("message", resolve).off("exit", hasEnded);
    return answer;
  }

  #end(child: ChildProcess): void {
    this.#running.delete(child);
    endGroup(child);
  }
}

/** Links each package rather than the folder of all, because vitest keeps its caches in that. */
function linkPackages(from: string, to: string): void {
  mkdirSync(to);
  for (const name of readdirSync(from).filter((each) => !each.startsWith(".") || each === ".bin")) {
    const [path, link] = [join(from, name), join(to, name)];
    if (name.startsWith("@")) linkPackages(path, link);
    // A package of the project itself: the copy has its own.
    else if (lstatSync(path).isSymbolicLink()) symlinkSync(readlinkSync(path), link);
    else symlinkSync(path, link);
  }
}

/** Reads a line for each test or test file: its id and the blocks that it enters, separated by spaces. */
function readEntered(lines: string): Entered {
  const parts = lines.split("\n").map((line) => line.split(" "));
  return new Map(parts.map(([id = "", ...blocks]) => [id, new Set(blocks)]));
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}
