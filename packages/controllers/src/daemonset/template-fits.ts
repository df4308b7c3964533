/** Which nodes the templates of DaemonSets fit; a class of nodes is held against each once. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import type { DaemonRows } from './daemon-rows.ts';
import { DaemonFit, NO_FIT, type Fit } from './node-fit.ts';

/** Classes that one template remembers; where nodes are of more, it begins anew. */
const CLASSES_MAX = 4096;

interface Template {
  readonly fit: DaemonFit;
  readonly byClass: Map<number, Fit>;
}

export class TemplateFits {
  readonly #rows: DaemonRows;
  readonly #setOf: (key: string) => JsonObject | undefined;
  readonly #templates: Map<string, Template> = new Map();

  /** `setOf` reads a set when its template is asked for the first time. */
  constructor(rows: DaemonRows, setOf: (key: string) => JsonObject | undefined) {
    this.#rows = rows;
    this.#setOf = setOf;
  }

  /** The set was changed, or is gone. */
  forget(key: string): void {
    this.#templates.delete(key);
  }

  /** How a set's template fits a node of the class; -1 is the class of no node. */
  of(key: string, node: number, kind: number): Fit {
    const { fit, byClass } = this.#templateOf(key);
    if (kind < 0) return NO_FIT;
    if (fit.isByName) return fit.of(this.#rows.nodeOf(node, kind));
    let found = byClass.get(kind);
    if (found === undefined) {
      found = fit.of(this.#rows.nodeOfClass(kind));
      if (byClass.size >= CLASSES_MAX) byClass.clear();
      byClass.set(kind, found);
    }
    return found;
  }

  #templateOf(key: string): Template {
    let template = this.#templates.get(key);
    if (template === undefined) {
      const spec = objectAt(this.#setOf(key), 'spec', 'template', 'spec') ?? {};
      template = { fit: new DaemonFit(spec), byClass: new Map() };
      this.#templates.set(key, template);
    }
    return template;
  }
}
