import type { CommandOf, Flag, Program } from "./command.ts";

/** Maximum number of characters in a help line, so that the line fits a wide terminal. */
const maxHelpLineLength = 120;

/** Returns the lines of a program's `--help`, with one line per command and the exit codes. */
export function overview<Terminal>({ name, about, commands, exitCodes }: Program<Terminal>): string[] {
  const codes = Object.entries(exitCodes).map(([code, meaning]) => `${code} ${meaning}`);
  return [
    `${name}: ${about}`,
    "",
    "Commands:",
    ...formatColumns(commands.map((command) => [command.name, command.summary])),
    "",
    `"${name} help COMMAND" and "${name} COMMAND -h" show the flags of a command, "${name} -v" the version.`,
    `Exit codes: ${codes.join(", ")}.`,
  ];
}

/** Returns the lines of a command's `--help`. */
export function helpOf<Terminal>(program: string, command: CommandOf<Terminal>): string[] {
  const { operands = [], flags = {}, notes = [], settings } = command;
  const rows: HelpRow[] = [
    ...operands.map(({ name, about }): HelpRow => [name, about]),
    ...Object.entries(flags).map(([name, flag]): HelpRow => [formatFlag(name, flag), flag.about]),
  ];
  return [
    usageOf(program, command),
    ...paragraph(formatColumns(rows)),
    ...paragraph(notes),
    ...paragraph(settings?.help ?? []),
  ];
}

/** Returns a command's usage line, with its name, operands and flags. */
export function usageOf<Terminal>(program: string, command: CommandOf<Terminal>): string {
  const { name, operands = [], flags = {}, settings } = command;
  return [
    `${program} ${name}`,
    ...operands.map((operand) => (operand.optional === true ? `[${operand.name}]` : operand.name)),
    ...Object.entries(flags).map(
      ([flag, about]) => `[${formatFlag(flag, about)}]${about.multiple === true ? "..." : ""}`,
    ),
    ...(settings === undefined ? [] : ["[--SETTING VALUE]..."]),
  ].join(" ");
}

/** Returns a flag with its dashes and the placeholder for its value. */
export function formatFlag(name: string, { value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

/** A line with two columns. */
export type HelpRow = readonly [left: string, right: string];

/** Aligns rows in two columns. Text that is too long for its line continues below, in the same column. */
export function formatColumns(rows: readonly HelpRow[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length)) + 4;
  return rows.flatMap(([left, right]) => {
    const [first = "", ...others] = wrap(right, maxHelpLineLength - width);
    return [`  ${left}`.padEnd(width) + first, ...others.map((line) => " ".repeat(width) + line)];
  });
}

function wrap(text: string, length: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > length) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function paragraph(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ["", ...lines];
}
