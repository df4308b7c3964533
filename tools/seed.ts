/**
 * Loaded before the tests: properties try the same cases in each check, so that a change is what
 * makes one fail. Long runs (`MEGAPLANE_LONG=1`) draw their own and print them.
 */
import fc from 'fast-check';

const SEED = 20_261_129;

if (process.env['MEGAPLANE_LONG'] !== '1') fc.configureGlobal({ seed: SEED });
