import { type ChildProcess, fork, spawn } from "node:child_process";
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
import type { TestAnswer, TestQuestion } from "./test-server.ts";

/** A copy of the project in a folder of its own, in which faults are planted one at a time. */
export class ProjectCopy implements Disposable {
  // Short, for the sockets of PostgreSQL in it: the path of a Unix socket has at most 107 bytes.
  readonly #folder = mkdtempSync(join(tmpdir(), "faults-"));
  readonly #temp: string = join(this.#folder, "tmp");
  readonly #running = new Set<ChildProcess>();
  readonly #changed = new Set<string>();
  #testServer: ChildProcess | undefined;

  constructor(project: string) {
    // PostgreSQL runs as another user when these tests run as root.
    chmodSync(this.#folder, 0o755);
    const left = new Set(["node_modules", ".git", "dist"]);
    cpSync(project, this.#folder, { recursive: true, filter: (name) => !left.has(basename(name)) });
    linkPackages(join(project, "node_modules"), join(this.#folder, "node_modules"));
    // A fault changes one file: the compiler need not look at the others again.
    const sourceOnly = { extends: "./tsconfig.json", include: ["src"], compilerOptions: { incremental: true } };
    writeFileSync(join(this.#folder, "tsconfig.source.json"), JSON.stringify(sourceOnly));
  }

  /** Ends what runs in it, and removes it. */
  [Symbol.dispose](): void {
    this.#running.forEach(endGroup);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Writes a file of the project, and returns what puts the old text back. */
  replace(file: string, text: string): Disposable {
    const path = join(this.#folder, file);
    const before = readFileSync(path, "utf8");
    const write = (content: string): void => {
      writeFileSync(path, content);
      this.#changed.add(file);
    };
    write(text);
    return { [Symbol.dispose]: () => write(before) };
  }

  /** Runs every one of these test files, and what fails twice more. */
  async runAllTests(files: readonly string[]): Promise<TestAnswer> {
    const server = await this.#startTestServer(["--all"]);
    const answer = await this.#ask(server, { files, changed: [], passing: {} }, 1800);
    this.#end(server);
    return answer ?? withoutAnswer("not done after half an hour");
  }

  /** Runs test files until one fails, without any fault `passing` of each. A run longer than `seconds` has failed. */
  async runTests(files: readonly string[], passing: TestAnswer["passing"], seconds: number): Promise<TestAnswer> {
    this.#testServer ??= await this.#startTestServer([]);
    const answer = await this.#ask(this.#testServer, { files, changed: [...this.#changed], passing }, seconds);
    this.#changed.clear();
    if (answer !== undefined) return answer;
    this.#end(this.#testServer);
    this.#testServer = undefined;
    return withoutAnswer(`no answer after ${Math.round(seconds)} s`);
  }

  /** Whether the compiler takes the source. */
  async compiles(): Promise<boolean> {
    return await this.#run("tsc", ["-p", "tsconfig.source.json"]);
  }

  /** Whether the linter finds no promise in a file that is let go. */
  async keepsPromises(file: string): Promise<boolean> {
    const rules = ["no-floating-promises", "no-misused-promises", "await-thenable"].flatMap((rule) => [
      "-D",
      `typescript/${rule}`,
    ]);
    return await this.#run("oxlint", ["--type-aware", "-A", "all", ...rules, file]);
  }

  async #startTestServer(flags: readonly string[]): Promise<ChildProcess> {
    const server = fork(join(this.#folder, "tools/plant-faults/test-server.ts"), flags, {
      cwd: this.#folder,
      // The inputs of every day: the verdict on a fault depends on no luck, and a thousand of them take time.
      env: { ...process.env, TMPDIR: this.#temp, TEST_SEED: undefined },
      stdio: "ignore",
      // A group of its own, to be ended with everything that its tests have started.
      detached: true,
    });
    this.#running.add(server);
    await new Promise((resolve) => server.once("message", resolve));
    return server;
  }

  /** `undefined` when no answer comes in time. */
  async #ask(server: ChildProcess, question: TestQuestion, seconds: number): Promise<TestAnswer | undefined> {
    // What a fault leaves behind must not be in the way of the next one.
    rmSync(this.#temp, { recursive: true, force: true, maxRetries: 3 });
    mkdirSync(this.#temp, { mode: 0o755 });
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

  /** Whether a command of the project's packages ends well. */
  async #run(command: string, args: readonly string[]): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const child = spawn(join("node_modules/.bin", command), args, {
      cwd: this.#folder,
      stdio: "ignore",
      detached: true,
    });
    this.#running.add(child);
    child.once("error", () => resolve(false)).once("exit", (code) => resolve(code === 0));
    const isWell = await promise;
    this.#end(child);
    return isWell;
  }
}

/** Links each package rather than the folder of them all, since vitest keeps its caches in it. */
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

function withoutAnswer(failure: string): TestAnswer {
  return { failure, failedFiles: [], seconds: {}, passing: {} };
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
