import { Command } from 'commander';
export function storeCommand(_done: (exitCode: number) => void): Command {
  return new Command('store');
}
