import { writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { spawnSync } from "node:child_process";
import { afterAll, expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

// The scripts of `plantstore completion`, each in its shell: what the shell is told that it may offer.

const folder = createTempFolder();
const program = [process.execPath, join(projectFolder, "src/plantstore/cli/main.ts")]
  .map((part) => `"${part}"`)
  .join(" ");
writeFileSync(folder.file("plantstore"), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
writeFileSync(folder.file("ids.txt"), "");
afterAll(() => folder[Symbol.dispose]());

/** How a shell is asked what may stand at the end of a line, one word a line. */
const shells: Readonly<Record<string, (words: readonly string[]) => string>> = {
  bash: (words) => `
    source <(plantstore completion bash)
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}) COMP_CWORD=${String(words.length - 1)}
    _plantstore
    printf '%s\\n' "\${COMPREPLY[@]}"
    complete -p plantstore >&2`,
  // Its editor needs a terminal; these three are what the script calls of it.
  zsh: (words) => `
    compdef() { : }
    _describe() { print -rl -- "\${(@P)2}" }
    _files() { print -rl -- *.txt }
    source <(plantstore completion zsh)
    words=(${words.map((word) => `'${word}'`).join(" ")}) CURRENT=${String(words.length)}
    _plantstore`,
  fish: (words) => `
    plantstore completion fish | source
    complete --do-complete '${words.join(" ")}'`,
};

function offered(shell: string, words: readonly string[]): string[] {
  const env = { PATH: [folder.path, process.env["PATH"]].join(delimiter), HOME: folder.path };
  const { stdout, stderr } = spawnSync(shell, ["-c", shells[shell]?.(words) ?? ""], {
    cwd: folder.path,
    env,
    encoding: "utf8",
  });
  expect(stderr).toBe(shell === "bash" ? "complete -o default -F _plantstore plantstore\n" : "");
  return stdout.split("\n").filter((line) => line !== "");
}

const about = "add plants from a file or standard input, one id per line";

test.each([
  { shell: "bash", words: ["plantstore", "im"], want: ["import"] },
  { shell: "bash", words: ["plantstore", "token", ""], want: ["create", "list", "revoke"] },
  { shell: "zsh", words: ["plantstore", "im"], want: [`import:${about}`] },
  { shell: "zsh", words: ["plantstore", "import", ""], want: ["ids.txt"] },
  {
    shell: "zsh",
    words: ["plantstore", "deletions", "--si"],
    want: [expect.stringMatching(/^--since:.* 2030-01-31T12\\:00/)],
  },
  { shell: "fish", words: ["plantstore", "im"], want: [`import\t${about}`] },
  { shell: "fish", words: ["plantstore", "import", "ids"], want: ["ids.txt"] },
])("$shell completes $words", ({ shell, words, want }) => {
  expect(offered(shell, words)).toEqual(want);
});
