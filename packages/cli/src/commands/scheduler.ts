import { Command } from 'commander';
export function schedulerCommand(_done: (exitCode: number) => void): Command {
  return new Command('scheduler');
}
