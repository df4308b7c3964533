/** The versions of a CustomResourceDefinition as its JSON has them. */
import { isObject, type JsonObject } from '../json/json-value.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { Printer } from '../printers/printing.ts';
import { customPrinterOf } from '../structural/columns.ts';
import {
  compileSchema,
  type CompiledSchema,
  type ScalePaths,
} from '../structural/compiled-schema.ts';
import { parseSimplePath } from '../structural/schema/simple-path.ts';

/**
 * One version of a definition that was let through. It holds the parsed JSON, so it is made, asked
 * and dropped; what is kept is what its methods give.
 */
export class DefinitionVersion {
  readonly #version: JsonObject;

  constructor(version: JsonObject) {
    this.#version = version;
  }

  get name(): string {
    return stringAt(this.#version, 'name');
  }

  get isServed(): boolean {
    return this.#version['served'] === true;
  }

  get isStorage(): boolean {
    return this.#version['storage'] === true;
  }

  get isDeprecated(): boolean {
    return this.#version['deprecated'] === true;
  }

  /** '' where the definition leaves the words to the server. */
  get deprecationWarning(): string {
    return stringAt(this.#version, 'deprecationWarning');
  }

  get hasStatus(): boolean {
    return objectAt(this.#version, 'subresources', 'status') !== undefined;
  }

  get scale(): ScalePaths | null {
    const scale = objectAt(this.#version, 'subresources', 'scale');
    if (scale === undefined) return null;
    const labelSelectorPath = stringAt(scale, 'labelSelectorPath');
    return {
      specReplicasPath: stringAt(scale, 'specReplicasPath'),
      statusReplicasPath: stringAt(scale, 'statusReplicasPath'),
      ...(labelSelectorPath === '' ? {} : { labelSelectorPath }),
    };
  }

  /** JSON paths without the leading point, as field selectors name them, and their steps. */
  get selectableFields(): { readonly name: string; readonly path: readonly string[] }[] {
    return listAt(this.#version, 'selectableFields').map((one) => {
      const path = stringAt(one, 'jsonPath');
      return { name: path.replace(/^\./, ''), path: parseSimplePath(path) ?? [] };
    });
  }

  /** `openAPIV3Schema`. */
  get schema(): JsonObject {
    return objectAt(this.#version, 'schema', 'openAPIV3Schema') ?? {};
  }

  compile(): CompiledSchema {
    return compileSchema(this.schema);
  }

  printer(): Printer {
    return customPrinterOf(listAt(this.#version, 'additionalPrinterColumns').filter(isObject));
  }
}

/** The versions of a definition, in its order. */
export function definitionVersions(definition: JsonObject): DefinitionVersion[] {
  const versions = listAt(definition, 'spec', 'versions').filter(isObject);
  return versions.map((version) => new DefinitionVersion(version));
}
