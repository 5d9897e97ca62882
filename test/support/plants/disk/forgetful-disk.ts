import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
// oxfmt-ignore
import { copyFileSync, existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync
} from "node:fs";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { compileCache } from "../../../../protoport/testing/src/process/child-program.ts";
import { createTempFolder, type TempFolder } from "../../../../protoport/testing/src/process/temp-folder.ts";

/** Returns whether a compiler for the disk and a linker that preloads it exist. */
export function canForget(): boolean {
  try {
    execFileSync("cc", ["--version"], { stdio: "ignore" });
    return process.platform === "linux";
  } catch {
    return false;
  }
}

/** A file, with a number that it keeps when it is renamed. */
type NamedFile = { readonly inode: string; readonly name: string };

/** A folder whose disk loses unsynced data, see disk.c. Dispose it with `using`. Its initial content is synced. */
export class ForgetfulDisk {
  readonly #all: TempFolder = createTempFolder();
  readonly #state: string = this.#all.file("state");
  readonly #library: string = this.#all.file("disk.so");
  /** The folder as programs see it. */
  readonly folder: string = this.#all.file("folder");

  constructor(fill: (folder: string) => void) {
    const source = new URL("disk.c", import.meta.url).pathname;
    execFileSync("cc", ["-shared", "-fPIC", "-o", this.#library, source]);
    mkdirSync(this.folder);
    mkdirSync(this.#state);
    fill(this.folder);
    const names = this.#currentNames().map(({ inode, name }) => {
      const path = join(this.folder, name);
      copyFileSync(path, join(this.#state, inode));
      linkSync(path, join(this.#state, `${inode}.inode`));
      return `${inode} ${name}\n`;
    });
    writeFileSync(join(this.#state, "names"), names.join(""));
  }

  /** Runs a program on this Node.js, and returns its output. @param fault - DISK_FAULT in disk.c */
  run(args: readonly string[], fault?: string): string {
    const { stdout, stderr, error } = spawnSync(process.execPath, args, {
      env: { ...this.#environment(), ...(fault === undefined ? {} : { DISK_FAULT: fault }) },
      encoding: "utf8",
    });
    if (error !== undefined) throw error;
    if (stdout === "") throw new Error(`the program has no output, only ${stderr}`);
    return stdout;
  }

  /** Runs a program, and calls `onStep` before each sync and after each rename, while the program waits. */
  async runInSteps(args: readonly string[], onStep: () => void): Promise<{ exitCode: number | null; stderr: string }> {
    const env = { ...this.#environment(), DISK_STEPS: "on" };
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe", "pipe"] });
    const closed = once(child, "close");
    const { 2: errors, 3: steps } = child.stdio;
    if (errors === null || !(steps instanceof Duplex)) throw new Error("the program has no pipes");
    const stderr = text(errors);
    for await (const _ of steps) {
      onStep();
      steps.write("\0");
    }
    await closed;
    return { exitCode: child.exitCode, stderr: await stderr };
  }

  /**
   * Returns a copy of the folder after a power loss.
   * @param written - suffixes of files that the kernel wrote in time without a sync
   * @param names - whether the folder has the names from its last sync, or the current ones
   */
  losePower(written: readonly string[], names: "synced" | "current" = "synced"): string {
    const after = mkdtempSync(this.#all.file("after-"));
    for (const { inode, name } of names === "current" ? this.#currentNames() : this.#syncedNames()) {
      const isWritten = written.some((end) => name.endsWith(end));
      const content = join(this.#state, isWritten ? `${inode}.inode` : inode);
      if (existsSync(content)) copyFileSync(content, join(after, name));
      else writeFileSync(join(after, name), "");
    }
    return after;
  }

  #environment(): NodeJS.ProcessEnv {
    const disk = { LD_PRELOAD: this.#library, DISK_FOLDER: this.folder, DISK_STATE: this.#state };
    return { ...process.env, ...compileCache, ...disk };
  }

  #syncedNames(): NamedFile[] {
    const lines = readFileSync(join(this.#state, "names"), "utf8").split("\n").slice(0, -1);
    return lines.map((line) => {
      const [, inode = "", name = ""] = /^(\d+) (.*)$/.exec(line) ?? [];
      return { inode, name };
    });
  }

  #currentNames(): NamedFile[] {
    return readdirSync(this.folder).map((name) => ({ inode: String(statSync(join(this.folder, name)).ino), name }));
  }

  [Symbol.dispose](): void {
    this.#all[Symbol.dispose]();
  }
}
