/** `posthorn completion`: completion scripts for shells. */
import { action, type Command } from "../command.ts"
import { placesOf } from "../completion.ts"
import { SHELLS, type Shell, scriptFor } from "../completion-scripts.ts"
import { COMMANDS } from "../registry.ts"
import { unknown } from "../usage-error.ts"

export const command: Command = action({
  summary: "print the script that makes a shell complete commands and flags",
  about: `bash: eval "$(posthorn completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc, behind compinit;
fish: posthorn completion fish > ~/.config/fish/completions/posthorn.fish.`,
  args: [{ name: "shell", about: SHELLS.join(", "), choices: SHELLS }],
  examples: SHELLS.map((shell) => `posthorn completion ${shell}`),
  alone: true,
  async run({ args }) {
    if (!SHELLS.includes(args.shell as Shell)) throw unknown("shell", args.shell, SHELLS)
    process.stdout.write(scriptFor(args.shell as Shell, await placesOf(COMMANDS)))
    return 0
  },
})
