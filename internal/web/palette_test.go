package web

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// deficiencies are the visions that are simulated: matrices for linear RGB by Machado,
// Oliveira and Fernandes (2009), for a complete lack of one kind of cones.
var deficiencies = map[string][9]float64{
	"normal":       {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"protanopia":   {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
	"deuteranopia": {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
	"tritanopia":   {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900},
}

// flat are the kinds whose textures are hardly visible in a narrow run. The colors of the
// others may be closer, because their textures tell them apart.
var flat = []kind{kindUser, kindAssistant, kindResult}

// Kinds can be told apart in light and dark with each kind of color vision.
func TestPalette(t *testing.T) {
	for scheme, colors := range palettes(t) {
		for name, matrix := range deficiencies {
			for i, a := range kinds {
				for _, b := range kinds[:i] {
					least := 0.0 // their textures differ
					switch {
					case slices.Contains(flat, a) && slices.Contains(flat, b):
						least = 20
					case slices.Contains(flat, a) || slices.Contains(flat, b):
						least = 8
					}
					if d := difference(seen(colors[a], matrix), seen(colors[b], matrix)); d < least {
						t.Errorf("%s, %s: %s %v and %s %v differ by %.1f, want %.0f or more", scheme, name, a, colors[a], b, colors[b], d, least)
					}
				}
				if c := contrast(colors[a], colors["bg"]); name == "normal" && c < 2.5 {
					t.Errorf("%s: %s has a contrast of %.1f to the ground", scheme, a, c)
				}
			}
		}
	}
}

// Each kind has a texture of its own.
func TestTextures(t *testing.T) {
	text, err := os.ReadFile("assets/texture.js")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): \([xy, ]*\) => (.*),$`).FindAllStringSubmatch(string(text), -1) {
		if other := found[m[2]]; other != "" {
			t.Errorf("%s and %s have the same texture", m[1], other)
		}
		found[m[2]] = m[1]
	}
	for _, k := range kinds {
		if !slices.Contains(slices.Collect(maps.Values(found)), string(k)) {
			t.Errorf("%s has no texture", k)
		}
	}
}

type rgb [3]float64

// palettes reads the colors of both schemes.
func palettes(t *testing.T) map[string]map[kind]rgb {
	text, err := os.ReadFile("../look/look.css")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]map[kind]rgb)
	for i, block := range regexp.MustCompile(`(?s)color-scheme: (light|dark);(.*?)\}`).FindAllStringSubmatch(string(text), 2) {
		colors := make(map[kind]rgb)
		for _, m := range regexp.MustCompile(`--([\w-]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(block[2], -1) {
			hex := m[2]
			if len(hex) == 3 {
				hex = fmt.Sprintf("%c%c%c%c%c%c", hex[0], hex[0], hex[1], hex[1], hex[2], hex[2])
			}
			n, err := strconv.ParseUint(hex, 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			colors[kind(m[1])] = rgb{float64(n >> 16), float64(n >> 8 & 255), float64(n & 255)}
		}
		for _, k := range append(kinds, "bg") {
			if _, ok := colors[k]; !ok {
				t.Fatalf("palette %d has no color for %s", i, k)
			}
		}
		out[block[1]] = colors
	}
	if len(out) != 2 {
		t.Fatalf("%d palettes, want light and dark", len(out))
	}
	return out
}

// linear returns a color in linear light.
func linear(c rgb) (out rgb) {
	for i, v := range c {
		if v /= 255; v <= 0.04045 {
			out[i] = v / 12.92
		} else {
			out[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return out
}

// seen returns how a color looks, in linear light.
func seen(c rgb, m [9]float64) rgb {
	l := linear(c)
	var out rgb
	for i := range out {
		out[i] = min(1, max(0, m[3*i]*l[0]+m[3*i+1]*l[1]+m[3*i+2]*l[2]))
	}
	return out
}

// contrast is the contrast ratio of two colors by WCAG.
func contrast(a, b rgb) float64 {
	lum := func(c rgb) float64 { l := linear(c); return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2] + 0.05 }
	x, y := lum(a), lum(b)
	return max(x, y) / min(x, y)
}

// difference is the distance of two colors in the CIELAB space (CIE 1976), in which a
// difference of 2 is just visible.
func difference(a, b rgb) float64 {
	p, q := lab(a), lab(b)
	return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
}

func lab(l rgb) rgb {
	f := func(v float64) float64 {
		if v > 216.0/24389 {
			return math.Cbrt(v)
		}
		return (24389.0/27*v + 16) / 116
	}
	x := f((0.4124564*l[0] + 0.3575761*l[1] + 0.1804375*l[2]) / 0.95047)
	y := f(0.2126729*l[0] + 0.7151522*l[1] + 0.0721750*l[2])
	z := f((0.0193339*l[0] + 0.1191920*l[1] + 0.9503041*l[2]) / 1.08883)
	return rgb{116*y - 16, 500 * (x - y), 200 * (y - z)}
}
