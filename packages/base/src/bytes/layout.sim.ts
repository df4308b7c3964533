/** How the engine lays out objects: what compiled code rests on. */
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';

setFlagsFromString('--allow-natives-syntax');
const haveSameMap = runInThisContext('(a, b) => %HaveSameMap(a, b)') as (
  a: object,
  b: object,
) => boolean;

/**
 * Whether two objects of one class have one layout. They have not once a field of one took a value
 * that the layout had no room for, such as a fraction where there were whole numbers: then all code
 * that was compiled for the class is thrown away.
 */
export function haveSameLayout(a: object, b: object): boolean {
  return haveSameMap(a, b);
}
