import { exitCode, type Command, UsageError } from "./command.ts";

// Each script asks `plantstore complete` what may stand at the cursor, so that it fits every release. When there is no
// answer, the shell completes files.
const scripts: Readonly<Record<string, string>> = {
  bash: `_plantstore() {
  local IFS=$'\\n'
  COMPREPLY=($(plantstore complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o default -F _plantstore plantstore`,
  zsh: `#compdef plantstore
_plantstore() {
  local -a candidates
  candidates=("\${(@f)$(plantstore complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  candidates=("\${(@)\${(@)candidates//:/\\\\:}/$'\\t'/:}")
  if [[ -n $candidates ]]; then _describe plantstore candidates; else _files; fi
}
compdef _plantstore plantstore`,
  fish: `function __plantstore_complete
  set -l words (commandline -opc) (commandline -ct)
  plantstore complete -- $words[2..] 2>/dev/null
end
complete -c plantstore -n 'count (__plantstore_complete) >/dev/null' -f -a '(__plantstore_complete)'`,
};

/** Prints the script that makes a shell complete the words of `plantstore`. */
export const completionCommand: Command = {
  name: "completion",
  summary: "print the script that makes a shell complete commands and flags",
  operands: [{ name: "SHELL", about: `one of ${Object.keys(scripts).join(", ")}`, words: Object.keys(scripts) }],
  notes: [
    "bash:  source <(plantstore completion bash)   in ~/.bashrc",
    "zsh:   source <(plantstore completion zsh)    in ~/.zshrc, below compinit",
    "fish:  plantstore completion fish | source    in ~/.config/fish/config.fish",
  ],
  run: async (_flags, [shell = ""], terminal) => {
    const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
    if (script === undefined) throw new UsageError(`there are scripts for ${Object.keys(scripts).join(", ")}`);
    terminal.out(script);
    return exitCode.ok;
  },
};
