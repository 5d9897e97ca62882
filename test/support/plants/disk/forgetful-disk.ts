import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { compileCache } from "../../process/child-program.ts";
import { createTempFolder, type TempFolder } from "../../process/temp-folder.ts";

/** Whether there is a compiler for the disk, and a linker that preloads it. */
export function canForget(): boolean {
  try {
    execFileSync("cc", ["--version"], { stdio: "ignore" });
    return process.platform === "linux";
  } catch {
    return false;
  }
}

/**
 * A folder whose disk forgets what was not synced, as disk.c says. Dispose of it with `using`; what is in it at first is
 * on its disk.
 */
export class ForgetfulDisk {
  readonly #all: TempFolder = createTempFolder();
  readonly #state: string = this.#all.file("state");
  readonly #library: string = this.#all.file("disk.so");
  /** The folder as the programs see it. */
  readonly folder: string = this.#all.file("folder");

  constructor(fill: (folder: string) => void) {
    const source = new URL("disk.c", import.meta.url).pathname;
    execFileSync("cc", ["-shared", "-fPIC", "-o", this.#library, source]);
    mkdirSync(this.folder);
    mkdirSync(this.#state);
    fill(this.folder);
    const names = readdirSync(this.folder).map((name) => {
      const path = join(this.folder, name);
      const inode = String(statSync(path).ino);
      copyFileSync(path, join(this.#state, inode));
      linkSync(path, join(this.#state, `${inode}.inode`));
      return `${inode} ${name}\n`;
    });
    writeFileSync(join(this.#state, "names"), names.join(""));
  }

  /**
   * Runs a program on this Node to its end, and returns what it has written.
   *
   * @param fault - what happens to one of its syncs, as disk.c has it
   */
  run(args: readonly string[], fault?: string): string {
    const env = { ...process.env, ...compileCache, LD_PRELOAD: this.#library, DISK_FOLDER: this.folder };
    const { stdout, stderr, error } = spawnSync(process.execPath, args, {
      env: { ...env, DISK_STATE: this.#state, ...(fault === undefined ? {} : { DISK_FAULT: fault }) },
      encoding: "utf8",
    });
    if (error !== undefined) throw error;
    if (stdout === "") throw new Error(`the program has written nothing but ${stderr}`);
    return stdout;
  }

  /**
   * The folder as it is after a loss of power.
   *
   * @param written - the ends of the names of files that the kernel has written in time, although nobody has synced them
   */
  losePower(written: readonly string[]): string {
    const after = mkdtempSync(this.#all.file("after-"));
    for (const line of readFileSync(join(this.#state, "names"), "utf8").split("\n").slice(0, -1)) {
      const [, inode = "", name = ""] = /^(\d+) (.*)$/.exec(line) ?? [];
      const isWritten = written.some((end) => name.endsWith(end));
      const content = join(this.#state, isWritten ? `${inode}.inode` : inode);
      if (existsSync(content)) copyFileSync(content, join(after, name));
      else writeFileSync(join(after, name), "");
    }
    return after;
  }

  [Symbol.dispose](): void {
    this.#all[Symbol.dispose]();
  }
}
