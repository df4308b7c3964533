// Prints what Go's JSON and protobuf encoders do with each field of each Kubernetes type that a
// server meets: facts that neither OpenAPI nor the .proto files hold. One line a type.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var special = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):           "!time",
	reflect.TypeOf(metav1.MicroTime{}):      "!microTime",
	reflect.TypeOf(metav1.Duration{}):       "!duration",
	reflect.TypeOf(metav1.FieldsV1{}):       "!fieldsV1",
	reflect.TypeOf(resource.Quantity{}):     "!quantity",
	reflect.TypeOf(intstr.IntOrString{}):    "!intOrString",
	reflect.TypeOf(runtime.RawExtension{}):  "!raw",
	reflect.TypeOf(apiextensions.JSON{}):    "!json",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrBool{}):        "!schemaOrBool",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrArray{}):       "!schemaOrArray",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrStringArray{}): "!schemaOrStringArray",
}

var seen = map[reflect.Type]bool{}
var lines []string

func typeName(t reflect.Type) string {
	return strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
}

func describe(t reflect.Type) string {
	if name, ok := special[t]; ok {
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + describe(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if t.Name() != "" && t.Kind() == reflect.Slice {
			return "&" + typeName(t) + "=[]" + describe(t.Elem())
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		visit(t.Elem())
		return "map[" + t.Key().Kind().String() + "]" + describe(t.Elem())
	case reflect.Struct:
		visit(t)
		return typeName(t)
	case reflect.Interface:
		return "!raw"
	default:
		if t.PkgPath() != "" {
			return t.Kind().String() + ":" + t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:] + "." + t.Name()
		}
		return t.Kind().String()
	}
}

func visit(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || special[t] != "" {
		return
	}
	seen[t] = true
	var fields []string
	collect(t, &fields)
	lines = append(lines, typeName(t)+" "+strings.Join(fields, " "))
}

func collect(t reflect.Type, fields *[]string) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		parts := strings.Split(tag, ",")
		if parts[0] == "-" || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		if f.Anonymous && parts[0] == "" {
			if f.Type.Name() == "TypeMeta" {
				continue
			}
			// The protobuf codec keeps an embedded struct as a message of its own; mark it.
			proto := f.Tag.Get("protobuf")
			if proto != "" {
				*fields = append(*fields, "^"+strings.Split(proto, ",")[1]+"|"+typeName(f.Type))
				visit(f.Type)
				continue
			}
			collect(f.Type, fields)
			continue
		}
		flags := ""
		for _, p := range parts[1:] {
			if p == "omitempty" {
				flags += "o"
			}
			if p == "omitzero" {
				flags += "z"
			}
		}
		number := "0"
		if proto := strings.Split(f.Tag.Get("protobuf"), ","); len(proto) > 1 {
			number = proto[1]
		}
		*fields = append(*fields, fmt.Sprintf("%s|%s|%s|%s", parts[0], number, flags, describe(f.Type)))
	}
}

func main() {
	_ = apiextensions.AddToScheme(scheme.Scheme)
	_ = apiregistration.AddToScheme(scheme.Scheme)
	_ = admissionv1.AddToScheme(scheme.Scheme)
	_ = apidiscovery.AddToScheme(scheme.Scheme)
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" {
			continue
		}
		visit(t)
	}
	sort.Strings(lines)
	fmt.Fprintln(os.Stdout, strings.Join(lines, "\n"))
}
