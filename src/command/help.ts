import { flagOf, type Setting, settingGroups } from "../server/index.ts";
import type { Command, Flag } from "./command.ts";

/** Returns the lines of `plantstore --help`. */
export function overview(commands: readonly Command[]): string[] {
  return [
    "plantstore: a plant store over gRPC, gRPC-Web, Connect and REST, on one port.",
    "",
    "Commands:",
    ...inColumns(commands.map(({ name, summary }) => [name, summary])),
    "",
    '"plantstore help COMMAND" and "plantstore COMMAND -h" show the flags of a command, "plantstore -v" the version.',
    "Exit codes: 0 success, 1 failure, 2 invalid usage, 74 failed store, 78 invalid configuration.",
  ];
}

/** Returns the lines of a command's `--help`. */
export function helpOf(command: Command): string[] {
  const { operands = [], flags = {}, notes = [], settings } = command;
  const rows: Row[] = [
    ...operands.map(({ name, about }): Row => [name, about]),
    ...Object.entries(flags).map(([name, flag]): Row => [formatFlag(name, flag), flag.about]),
  ];
  return [
    usageOf(command),
    ...paragraph(inColumns(rows)),
    ...paragraph(notes),
    ...(settings === "accepted"
      ? ["", 'The settings are those of serve; run "plantstore help serve" to list them.']
      : []),
    ...(settings === "listed" ? settingLines() : []),
  ];
}

/** Returns the usage line of a command: its name, operands and flags. */
export function usageOf({ name, operands = [], flags = {}, settings }: Command): string {
  return [
    `plantstore ${name}`,
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

function settingLines(): string[] {
  const groups = settingGroups.flatMap(({ title, settings }) => ["", `${title}:`, ...settings.flatMap(describe)]);
  return ["", "Settings, by flag or by environment variable, with their defaults:", ...groups];
}

function describe(setting: Setting<unknown>): string[] {
  const { about, fallback } = setting;
  return [`  ${namesOf(setting)}`, `      ${about}${fallback === undefined ? "" : ` (${fallback})`}`];
}

/** Returns the flag of a setting, if any, and its variable. */
export function namesOf(setting: Setting<unknown>): string {
  const flag = flagOf(setting);
  return flag === undefined ? setting.variable : `--${flag}, ${setting.variable}`;
}

type Row = readonly [left: string, right: string];

function inColumns(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => `  ${left.padEnd(width)}${right}`);
}

function paragraph(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ["", ...lines];
}
